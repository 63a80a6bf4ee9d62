"""The HTTP API: routes, identity, request and response models. The same code serves Lambda and the local server."""
