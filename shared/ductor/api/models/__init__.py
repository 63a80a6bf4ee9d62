"""Request and response models: the contract of the API, and what its OpenAPI document is made of."""
