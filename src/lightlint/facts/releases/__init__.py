"""What a release of torch or Lightning has, lost and deprecated, and code that provides for it."""
