"""What things are: releases and localities on the wire, filters, pages, names."""
