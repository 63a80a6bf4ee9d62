"""The composition root: the only place where adapters meet use cases, and where configuration is read.

`local_*` put the one process of a laptop together, `aws_*` the Lambda functions; what both are made of alike stands in
the other modules, which name no adapter. Nothing is imported here: a cold start pays for every import.
"""
