"""What can be done with jobs, for every surface alike: the one place that joins specs, engines and stores."""
