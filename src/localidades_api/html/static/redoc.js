// ReDoc in the frame of the site; its search would need a worker that the security policy doesn't allow.
const place = /** @type {HTMLElement} */ (document.getElementById("redoc"));
Redoc.init(place.dataset.document, { disableSearch: true, hideDownloadButton: true, nativeScrollbars: true }, place);
