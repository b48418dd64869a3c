// The bookmarklet of the clipper, which runs in pages of other sites. It opens a window of Quaid and passes the page in
// the fragment of its address, which no policy of a page forbids. The address has at most a million characters,
// because browsers limit it. Lines are joined to make the bookmarklet, so each statement ends with a semicolon.
(() => {
  const copy = document.documentElement.cloneNode(true);
  const originals = document.body ? document.body.querySelectorAll("*") : [];
  copy.querySelectorAll("body *").forEach((element, place) => {
    const original = originals[place];
    if (original && original.checkVisibility && !original.checkVisibility()) element.remove();
  });
  copy.querySelectorAll("script,style,noscript,template,svg,iframe,object,embed,canvas,video,audio,link").forEach((element) => element.remove());
  copy.querySelectorAll(":not(meta)").forEach((element) => element.getAttributeNames().forEach((name) => element.removeAttribute(name)));
  const body = copy.querySelector("body");
  const clip = {
    source: location.href,
    title: document.title.slice(0, 500),
    selection: String(getSelection()).slice(0, 20000),
    content: body && body.textContent.trim() ? copy.innerHTML : "",
  };
  let data = encodeURIComponent(JSON.stringify(clip));
  while (data.length > 1000000) {
    clip.content = clip.content.slice(0, clip.content.length / 2);
    clip.cut = true;
    data = encodeURIComponent(JSON.stringify(clip));
  }
  const view = open("ADDRESS/clip#clip=" + data, "_blank", "popup,width=560,height=720");
  if (!view) alert("The browser did not let Quaid open a window.");
})();
