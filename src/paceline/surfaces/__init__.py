"""What people and programs touch: thin, each over the services."""
