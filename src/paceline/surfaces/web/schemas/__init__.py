"""What requests and answers of the API look like; answers are those documents that ``-o json`` prints."""
