"""The service: takes tasks in, runs them, keeps their record, judges and delivers the result."""
