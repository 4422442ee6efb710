"""Rules for Kubernetes manifests: each module holds the rules of one subject and lists them in ``RULES``."""
