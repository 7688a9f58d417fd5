"""The names of the 32 estados that people use, and their codes."""

from collections.abc import Mapping

# Each estado by its key: every name that people use, besides the official one and INEGI's abbreviation.
STATE_NAMES: Mapping[int, tuple[str, ...]] = {
    1: ("aguascalientes", "ags", "aguas"),
    2: ("baja california", "baja california norte", "bc", "b c", "bcn", "b c n", "baja"),
    3: ("baja california sur", "bcs", "b c s", "baja sur"),
    4: ("campeche", "camp", "cam"),
    5: ("coahuila", "coahuila de zaragoza", "coah", "coa"),
    6: ("colima", "col"),
    7: ("chiapas", "chis", "chs", "chia"),
    8: ("chihuahua", "chih", "chi", "chihu"),
    9: ("ciudad de mexico", "cdmx", "cd mx", "cd mex", "cd mexico", "distrito federal", "df", "d f", "mexico df",
        "mexico d f", "mexico city", "cd de mexico", "dto federal"),
    10: ("durango", "dgo", "dur"),
    11: ("guanajuato", "gto", "guanajuto"),
    12: ("guerrero", "gro"),
    13: ("hidalgo", "hgo", "hid"),
    14: ("jalisco", "jal"),
    15: ("mexico", "estado de mexico", "mex", "edomex", "edo mex", "edo de mexico", "edo de mex", "edo mexico", "edomx",
         "em", "estado mexico", "est de mexico"),
    16: ("michoacan", "michoacan de ocampo", "mich", "mic"),
    17: ("morelos", "mor"),
    18: ("nayarit", "nay"),
    19: ("nuevo leon", "nl", "n l", "nvo leon", "nuevo l"),
    20: ("oaxaca", "oax"),
    21: ("puebla", "pue"),
    22: ("queretaro", "qro", "queretaro de arteaga", "quer", "que"),
    23: ("quintana roo", "qroo", "q roo", "q r", "qr", "quintanaroo", "quint roo"),
    24: ("san luis potosi", "slp", "s l p", "san luis p", "san luis", "sn luis potosi"),
    25: ("sinaloa", "sin"),
    26: ("sonora", "son"),
    27: ("tabasco", "tab"),
    28: ("tamaulipas", "tamps", "tam", "tamp"),
    29: ("tlaxcala", "tlax", "tlx"),
    30: ("veracruz", "veracruz de ignacio de la llave", "ver", "veracruz llave", "vera"),
    31: ("yucatan", "yuc"),
    32: ("zacatecas", "zac", "zacs"),
}  # fmt: skip

# The codes of ISO 3166-2, which the SAT uses as well, and those of the CURP. They are read where an estado stands; what
# is typed into a search may begin a name instead (`mor`, `ver`, `as`).
_ISO = """
    AGU BCN BCS CAM COA COL CHP CHH CMX DUR GUA GRO HID JAL MEX MIC
    MOR NAY NLE OAX PUE QUE ROO SLP SIN SON TAB TAM TLA VER YUC ZAC
"""
_CURP = "AS BC BS CC CL CM CS CH DF DG GT GR HG JC MC MN MS NT NL OC PL QT QR SP SL SR TC TS TL VZ YN ZS"
_IN_USE_BEFORE = {"dif": 9}  # of Distrito Federal

STATE_CODES: Mapping[str, int] = {
    **{code: id_ for codes in (_ISO, _CURP) for id_, code in enumerate(codes.lower().split(), 1)},
    **_IN_USE_BEFORE,
}
