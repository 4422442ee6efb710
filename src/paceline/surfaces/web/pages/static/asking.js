// Asks the server. Once it does not know any more who asks, nothing more is asked: the page becomes the entrance.

export async function ask(url, options) {
  const answer = await fetch(url, options);
  if (answer.status !== 401) return answer;
  location.reload();
  return new Promise(() => {}); // What waits for this goes on no more.
}
