import OGCFeatureLayer from "@arcgis/core/layers/OGCFeatureLayer.js";

/** Read a collection, `num` features at a time, and return the names. */
window.readAll = async (url, collectionId, num, customParameters) => {
  const layer = new OGCFeatureLayer({ url, collectionId, customParameters });
  await layer.load();
  const read = [];
  for (;;) {
    const query = layer.createQuery();
    Object.assign(query, { start: read.length, num, outFields: ["*"] });
    const { features, exceededTransferLimit } = await layer.queryFeatures(query);
    read.push(...features.map(({ attributes }) => attributes.nombre));
    if (!exceededTransferLimit) return read;
  }
};
