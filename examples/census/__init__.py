"""Wide & Deep on UCI Census Income."""
