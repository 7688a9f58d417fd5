"""The words of Mexican place names: abbreviations, words that say little, numbers.

All words are folded (`catalogue.folding`). `everyday_names.tsv` has the names that no rule makes.
"""

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What registers and people write for a word. A form that is itself a common name (`mar`, `sol`) has no place here.
_ABBREVIATIONS = """
    agricola: agric
    aguascalientes: ags
    ampliacion: ampl amp ampliac
    antonio: ant anto
    arroyo: arr
    avenida: avda
    bahia: bah
    barranca: bca barr
    barrio: bo bario
    campamento: campto
    campo pesquero: cp
    carretera: carr carret
    cerrada: cda
    chiapas: chis
    chihuahua: chih
    ciudad: cd cdad
    coahuila: coah
    colonia: col colon
    comunidad: comdad
    concepcion: concep
    congregacion: cong congr congreg
    constitucion: const
    coronel: cnel crnel
    cuauhtemoc: cuauh
    doctor: dr
    doctora: dra
    durango: dgo
    ejido: ej ejid
    emiliano: emil
    esquina: esq
    estacion: est estac
    exhacienda: exhda
    familia: fam
    fernandez: fdez
    fraccionamiento: fracc fraccto frac fracto
    francisco: fco fsco fcisco pancho
    general: gral grl
    gonzalez: glez gzlez gzz
    guadalupe: gpe guad
    guanajuato: gto
    guerrero: gro
    gutierrez: gtz gtez
    habitacional: hab
    hacienda: hda hcda
    hermanos: hnos
    hernandez: hdez hndez
    heroica: hca
    hidalgo: hgo
    ignacio: ign igncio
    ingeniero: ing
    invernadero: inv
    isla: isl
    jalisco: jal
    jesus: js
    jose: jo
    kilometro: km kms kilom
    laguna: lag lna
    lazaro: laz
    licenciado: lic
    maestro: mtro
    manuel: ml
    manzana: mza mzna
    margen: mgen
    maria: ma
    martinez: mtz mtnez
    mexico: mex
    michoacan: mich
    miguel: mig mgl
    monsenor: mons
    municipio: mpio mcpio
    norte: nte
    nuestra: ntra nra
    nueva: nva
    nuevo: nvo
    numero: no num nro
    oaxaca: oax
    oriente: ote
    palma: pma
    parcela: parc
    pedro: po
    poblacion: pobl
    poblado: pob pobdo
    poniente: pte
    presa: psa
    presidente: pdte
    profesor: prof profr
    puebla: pue
    pueblo: pblo
    puerto: pto
    queretaro: qro
    rancheria: ra rria rancher rcheria
    rancho: rcho rch rcho rnch rancheo
    rodriguez: rdz rdguez
    sagrado: sgdo
    salvador: salv
    san: sn
    sanchez: schz
    santa: sta
    santiago: stgo
    santo: sto
    santos: stos
    seccion: sec secc seccio
    senor: sr
    senora: sra
    sinaloa: sin
    tamaulipas: tamps
    teniente: tte
    tlaxcala: tlax
    unidad: unid
    urbanizacion: urb
    venustiano: venust
    veracruz: ver
    villa: vla
    yucatan: yuc
    zacatecas: zac
"""
# Forms of several words, as they come out of folding: `R/a`, `U. H.`, `N.C.P.E.`, `Ex-hacienda`, `C. P.`, `# 2`.
PHRASES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("r", "a"): ("rancheria",),
    ("r", "ia"): ("rancheria",),
    ("u", "h"): ("unidad", "habitacional"),
    ("ex", "hda"): ("exhacienda",),
    ("ex", "hacienda"): ("exhacienda",),
    ("c", "p"): ("campo", "pesquero"),
    ("c", "peso"): ("campo", "pesquero"),
    ("n", "c", "p", "e"): ("nuevo", "centro", "poblacion", "ejidal"),
    ("n", "c", "p"): ("nuevo", "centro", "poblacion"),
    ("ncpe",): ("nuevo", "centro", "poblacion", "ejidal"),
    ("ncp",): ("nuevo", "centro", "poblacion"),
    ("s", "l", "p"): ("slp",),
    ("b", "c", "s"): ("bcs",),
    ("b", "c"): ("bc",),
    ("d", "f"): ("df",),
    ("n", "l"): ("nl",),
    ("q", "roo"): ("quintana", "roo"),
    ("qroo",): ("quintana", "roo"),
    ("sto", "dgo"): ("santo", "domingo"),
    ("buena", "vista"): ("buenavista",),
    ("linda", "vista"): ("lindavista",),
    ("bella", "vista"): ("bellavista",),
    ("monte", "rey"): ("monterrey",),
    ("plan", "de", "ayala"): ("plan", "ayala"),
}

ARTICLES = frozenset({"el", "la", "los", "las", "lo", "l"})
# They carry no meaning of their own in a name, and nobody remembers them rightly.
STOP_WORDS = ARTICLES | {"de", "del", "y", "e", "en", "al", "a", "the"}

# Words that name the kind of a place: the catalogue writes them before the name, after it in brackets, or not at all.
GENERICS = _words(
    """rancho ranchito ranchos rancheria rancherias ejido ejidal colonia poblado pueblo congregacion comunidad barrio
    fraccionamiento ampliacion villa ciudad heroica heroico h v hacienda exhacienda estacion campo pesquero pesqueria
    puerto granja familia predio finca quinta paraje localidad caserio unidad habitacional residencial conjunto urbano
    centro poblacion agricola ganadera municipio cabecera ribera riberas isla playa numero seccion
    cooperativa cuadrilla estancia anexo parcela lote vivero huerta establo restaurante hotel corrales propiedad privada
    parque industrial sociedad produccion rural agencia tenencia delegacion ejidos colonias laguna estero pes
    """
)
# Kinds of a single property: a village of the name is meant sooner.
ESTABLISHMENTS = _words(
    """rancho granja granjas restaurante vivero huerta balneario quinta hotel motel establo gasolinera aserradero
    corrales vinedos bodega empaque propiedad invernadero empacadora avicola campamento gasera trituradora mina basurero
    fabrica ganadera escuela relleno rastro finca parque residencial agropecuaria industria sociedad lienzo"""
)
# Kinds of a whole village or town.
SETTLEMENTS = _words("pueblo poblado villa ciudad heroica heroico h localidad cabecera")
# Generic words that often make the name: what differs in one of these is less surely the same place.
WEIGHTY_GENERICS = _words("ampliacion puerto isla playa laguna estero ribera huerta estancia seccion")

# Words that tell two places of one name apart: where one has it and the other lacks it, or has its opposite, they are
# two places.
CONTRASTS: tuple[frozenset[str], ...] = (
    frozenset({"alto", "bajo", "arriba", "abajo", "enmedio", "medio", "alta", "baja"}),
    frozenset({"norte", "sur", "oriente", "poniente", "este", "oeste", "occidente"}),
    frozenset({"nuevo", "nueva", "viejo", "vieja", "antiguo", "antigua"}),
    frozenset({"grande", "chico", "chica", "chiquito"}),
    frozenset({"derecha", "izquierda"}),
    frozenset({"primero", "ultimo"}),
    frozenset({"ampliacion", "anexo"}),
)
CONTRASTING = frozenset().union(*CONTRASTS)

_NUMBERS = """
    1: uno una primero primera primer i
    2: dos segundo segunda ii
    3: tres tercero tercera tercer iii
    4: cuatro cuarto cuarta iv
    5: cinco quinto v
    6: seis sexto sexta vi
    7: siete septimo septima vii
    8: ocho octavo octava viii
    9: nueve noveno novena ix
    10: diez decimo decima
    11: once xi
    12: doce xii
    13: trece xiii
    14: catorce xiv
    15: quince xv
    16: dieciseis xvi
    17: diecisiete xvii
    18: dieciocho xviii
    19: diecinueve xix
    20: veinte xx
    21: veintiuno xxi
    22: veintidos xxii
    23: veintitres xxiii
    24: veinticuatro xxiv
    25: veinticinco xxv
    26: veintiseis
    27: veintisiete
    28: veintiocho
    29: veintinueve
    30: treinta
    40: cuarenta
    50: cincuenta
"""


def _read(table: str) -> dict[str, str]:
    """Read lines of `word: form form`; return the word of each form."""
    lines = (line.partition(":") for line in table.strip().splitlines())
    return {form: word.strip() for word, _, forms in lines for form in forms.split()}


ABBREVIATIONS: Mapping[str, tuple[str, ...]] = {
    form: tuple(word.split()) for form, word in _read(_ABBREVIATIONS).items()
}
NUMBERS: Mapping[str, str] = _read(_NUMBERS)
