"""Tools of registered servers, which the gateway itself runs when a model calls them."""
