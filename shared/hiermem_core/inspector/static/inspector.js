// Say the value of a slider beside it.
document.addEventListener("input", (event) => {
  const said = event.target.type === "range" && document.querySelector(`output[for="${event.target.id}"]`);
  if (said) said.textContent = Number(event.target.value).toLocaleString("en");
});
// A full address for a page that was asked for as a part of one.
document.addEventListener("htmx:responseError", (event) => {
  const place = event.detail.target;
  place.textContent = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html").querySelector("main p")?.textContent ?? "The inspector has ended.";
});
document.addEventListener("htmx:sendError", (event) => {
  event.detail.target.textContent = "The inspector has ended.";
});
