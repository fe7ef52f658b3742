//! Turns a fast answer from an event stream, which rmcp uses in sessions, into plain JSON: one write here and one read at the
//! client. All clients must accept both.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::{StreamExt as _, stream};
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use tokio::time::{Instant, timeout_at};

/// A slower answer stays a stream, whose keep-alive shows that it is being worked on.
pub(super) const AT_ONCE: Duration = Duration::from_millis(50);

/// The response as JSON, if its stream ends in time and has a single message.
pub(super) async fn at_once(response: Response) -> Response {
    let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    if !is_stream {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let mut events = body.into_data_stream();
    let deadline = Instant::now() + AT_ONCE;
    let mut held = Vec::new();
    let ended = loop {
        match timeout_at(deadline, events.next()).await {
            Ok(Some(Ok(event))) => held.push(event),
            Ok(None) => break true,
            Ok(Some(Err(_))) | Err(_) => break false,
        }
    };
    match if ended { only_message(&held) } else { None } {
        Some(message) => {
            head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            head.headers.remove(CACHE_CONTROL);
            head.headers.remove("x-accel-buffering");
            Response::from_parts(head, Body::from(message))
        }
        // What was read already, then the rest.
        None => Response::from_parts(head, Body::from_stream(stream::iter(held).map(Ok).chain(events))),
    }
}

/// The data of the events, if only one has any. A message is one line of JSON.
fn only_message(events: &[Bytes]) -> Option<Bytes> {
    let mut found = None;
    for event in events {
        for line in event.split(|byte| *byte == b'\n') {
            let data = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii).filter(|data| !data.is_empty());
            if let Some(data) = data
                && found.replace(event.slice_ref(data)).is_some()
            {
                return None;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use axum::{
        body::{Body, Bytes, to_bytes},
        response::Response,
    };
    use futures_util::{StreamExt, stream};
    use http::header::CONTENT_TYPE;

    use super::at_once;

    const PRIMING: &str = "data: \nid: 0/1\nretry: 3000\n\n";
    const ANSWER: &str = "data: {\"id\":1}\nid: 1/1\n\n";

    async fn sent(events: &'static [&'static str], ends: bool) -> (String, String) {
        let events = stream::iter(events.iter().map(|event| Ok::<_, std::io::Error>(Bytes::from(*event))));
        // A slow call: the stream ends after the deadline.
        let end = stream::once(async move {
            if !ends {
                tokio::time::sleep(super::AT_ONCE * 2).await;
            }
            Ok(Bytes::new())
        });
        let response = Response::builder()
            .header(CONTENT_TYPE, "text/event-stream")
            .body(Body::from_stream(events.chain(end)));
        let response = at_once(response.unwrap()).await;
        let kind = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (kind, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_fast_answer_is_json() {
        assert_eq!(sent(&[PRIMING, ANSWER], true).await, ("application/json".into(), "{\"id\":1}".into()));
    }

    #[tokio::test]
    async fn slow_answers_and_several_messages_stay_streams() {
        let stream = |text: String| ("text/event-stream".to_owned(), text);
        assert_eq!(sent(&[PRIMING, ANSWER], false).await, stream(format!("{PRIMING}{ANSWER}")));
        assert_eq!(sent(&[PRIMING], false).await, stream(PRIMING.into()));
        assert_eq!(sent(&[ANSWER, ANSWER], true).await, stream(format!("{ANSWER}{ANSWER}")));
    }
}
