"""The HTTP API: routes, authentication, request and response models. The same code serves Lambda and the local server."""
