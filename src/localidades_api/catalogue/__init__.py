"""The domain: columns, keys, filters, pagination, folding of names, and the schemas of requests and answers."""
