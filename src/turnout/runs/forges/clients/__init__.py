"""Our own thin clients of the forges' APIs."""
