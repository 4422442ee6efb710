"""The interfaces for users and programs: thin layers over the services."""
