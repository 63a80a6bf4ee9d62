"""Connectors: other systems' HTTP APIs, described in YAML files beside this one. No connector is code of its own."""
