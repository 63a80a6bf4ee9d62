"""The ports on AWS services. Nothing here knows a rule of the engine."""
