"""Why a script failed, from what it wrote last: the line that matters, the place in it, and what helps."""
