"""Random histories of releases, whose every answer is compared with a model.

`catalogues` invents the catalogues, `model` knows what a reader may find at a moment, `readers` asks and checks,
`changes` changes the database as commands do, `cutting` cuts a command's connection at any message. `machine` draws
histories of one application, `workers` of a service with two.
"""
