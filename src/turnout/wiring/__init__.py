"""The one room that names the concrete class behind every port, and joins the others."""
