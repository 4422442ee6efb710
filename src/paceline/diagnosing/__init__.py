"""Why a job is as it is: pure rules over what is known of it. So far: why it does not run."""
