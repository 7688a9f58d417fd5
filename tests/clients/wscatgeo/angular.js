// G: an Angular page that copies three levels of version 2 into a table, called across origins by a browser.
async (base) => {
  const LEVELS = {
    mgee: "cvegeo cve_ent nomgeo nom_abrev pob_total pob_femenina pob_masculina total_viviendas_habitadas",
    mgem: "cvegeo cve_ent cve_mun nomgeo cve_cab pob_total pob_femenina pob_masculina total_viviendas_habitadas",
    localidades:
      "cvegeo cve_ent cve_mun cve_loc nomgeo ambito latitud longitud altitud pob_total total_viviendas_habitadas",
  };
  const read = async (level, key) => {
    const answer = await fetch(`${base}/wscatgeo/v2/${level}/${key}`);
    const { datos } = await answer.json();
    return datos.map((row) => Object.fromEntries(LEVELS[level].split(" ").map((name) => [name, row[name]])));
  };
  const [state] = await read("mgee", "");
  const [municipio] = await read("mgem", state.cve_ent);
  const [place] = await read("localidades", municipio.cve_ent + municipio.cve_mun);
  return [state, municipio, place];
};
