"""Random histories of releases, whose every answer is compared with a model.

`catalogues` invents the catalogues, `model` knows what a reader may find at a moment, `readers` ask and check,
`changes` changes the database as commands do, `machine` draws histories, `cutting` cuts a command's connection at any
message.
"""
