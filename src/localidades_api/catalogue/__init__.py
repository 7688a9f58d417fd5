"""The domain: columns of a locality, filters, pagination, folding of names, and the schemas of the wire."""
