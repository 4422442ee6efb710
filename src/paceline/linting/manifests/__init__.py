"""Rules for Kubernetes manifests: each module has the rules on one subject and lists them in ``RULES``."""
