"""A cluster on this machine: an API server whose pods are processes, with faults on demand.

It speaks what the Kubernetes driver uses, in the shapes that API server and kubelet use, and keeps
what was asked of it. It is no cluster: nodes, schedulers and network plugins are not in it.
"""
