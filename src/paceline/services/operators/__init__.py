"""The operator: looks after all jobs of a Kubernetes cluster, each as a supervisor does on one machine."""
