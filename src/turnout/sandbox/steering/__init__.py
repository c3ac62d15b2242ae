"""What steers the tests from within files that hold other things as well."""
