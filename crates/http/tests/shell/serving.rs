//! Cases that take more than one exchange: slow clients, timeouts, draining, streams, bounds on connections.

use std::io::Read as _;

use crate::common::{Client, Outcome, Server};
use pinakes_http::Drained;
use pinakes_store::Limits;

/// Never reached by a passing test.
const LONG_MS: u64 = 60_000;
/// Certain to be over before a test's patience is.
const SHORT_MS: u64 = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_never_ends_is_closed() -> Outcome {
    let server = Server::start(Limits { header_timeout_ms: SHORT_MS, ..Limits::default() }).await?;
    let mut client = Client::connect(server.address).await?;
    client.send(b"GET /toy/list HTTP/1.1\r\nHost").await?;
    let answer = String::from_utf8(client.rest().await?)?;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_stops_is_refused_in_the_dialects_shape() -> Outcome {
    let server = Server::start(Limits { body_timeout_ms: SHORT_MS, ..Limits::default() }).await?;
    let mut client = Client::connect(server.address).await?;
    client.send(b"POST /toy/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc").await?;
    let answer = String::from_utf8(client.rest().await?)?;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.ends_with("{\"toy\":\"no byte of the body arrived for 100 ms\"}"), "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_does_not_begin_is_given_up() -> Outcome {
    let server = Server::start(Limits { request_timeout_ms: SHORT_MS, ..Limits::default() }).await?;
    let answer = server.get("/toy/slow").await?;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"), "{answer}");
    assert!(answer.contains("server-timing: total;dur="), "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_leaves_the_connection_alive() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    let mut client = Client::connect(server.address).await?;
    client.send(b"GET /toy/panic HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let first = client.until("\"}").await?;
    assert!(first.starts_with("HTTP/1.1 500 "), "{first}");
    client.send(b"GET /toy/list HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
    let second = String::from_utf8(client.rest().await?)?;
    assert!(second.ends_with("[{\"a\":1},2,\"x\"]"), "{second}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_nobody_wants_leaves_the_connection_alive() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    let mut client = Client::connect(server.address).await?;
    // The answer comes before the body, as for clients that send their heads first.
    client.send(b"POST /toy/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n").await?;
    let first = client.until("\r\n\r\n").await?;
    assert!(first.starts_with("HTTP/1.1 404 "), "{first}");
    client.send(b"0123456789").await?;
    client.send(b"GET /toy/list HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
    let second = String::from_utf8(client.rest().await?)?;
    assert!(second.ends_with("[{\"a\":1},2,\"x\"]"), "{second}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_finishes_the_request_under_way() -> Outcome {
    let server = Server::start(Limits { drain_timeout_ms: LONG_MS, ..Limits::default() }).await?;
    let (address, entered, release) = (server.address, server.entered.clone(), server.release.clone());
    let mut idle = Client::connect(address).await?;
    idle.send(b"GET /toy/list HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    idle.until("\"x\"]").await?;
    let mut client = Client::connect(address).await?;
    client.send(b"GET /toy/slow HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    entered.notified().await;

    let drained = server.stop();
    assert_eq!(idle.rest().await?, b"", "idle connections are closed");
    assert!(Client::connect(address).await.is_err(), "nobody listens any more");
    release.notify_waiters();
    let answer = String::from_utf8(client.rest().await?)?;
    assert!(answer.ends_with("done") && answer.contains("connection: close"), "{answer}");
    assert_eq!(drained.await?, Drained::Finished);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_ends_at_its_limit() -> Outcome {
    let server = Server::start(Limits { drain_timeout_ms: SHORT_MS, ..Limits::default() }).await?;
    let entered = server.entered.clone();
    let mut client = Client::connect(server.address).await?;
    client.send(b"GET /toy/slow HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    entered.notified().await;
    assert_eq!(server.stop().await?, Drained::Cut(1));
    assert_eq!(client.rest().await?, b"");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_bound_wait_for_a_place() -> Outcome {
    let server = Server::start(Limits { connections: 1, ..Limits::default() }).await?;
    let mut first = Client::connect(server.address).await?;
    first.send(b"GET /toy/list HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    first.until("\"x\"]").await?;
    let mut second = Client::connect(server.address).await?;
    second.send(b"GET /toy/list HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
    first.send(b"GET /toy/text HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
    assert!(first.rest().await?.ends_with(b"no play\n"));
    assert!(second.rest().await?.ends_with(b"\"x\"]"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_answers_stream_whole_or_are_cut() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    let whole = server.get("/toy/stream/200000").await?;
    assert!(whole.contains("transfer-encoding: chunked"), "{}", &whole[..300]);
    assert_eq!(whole.matches("00000000019999").count(), 11, "019999 and 0199990 to 0199999");
    assert!(whole.contains("000000000199999\n") && whole.ends_with("\r\n0\r\n\r\n"));

    let cut = server.get("/toy/stream/1000001").await?;
    assert!(cut.starts_with("HTTP/1.1 200 ") && !cut.ends_with("\r\n0\r\n\r\n"), "not taken for the whole");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_is_cut() -> Outcome {
    let limits = Limits { body_timeout_ms: SHORT_MS, drain_timeout_ms: LONG_MS, ..Limits::default() };
    let server = Server::start(limits).await?;
    let mut client = Client::connect(server.address).await?;
    client.send(b"GET /toy/stream/1000000 HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    client.until("\r\n\r\n").await?;
    // 16 MB do not fit between the two; the drain ends because the writing does.
    assert_eq!(server.stop().await?, Drained::Finished);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_answers_are_the_same_answers() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    let request = b"GET /toy/text HTTP/1.0\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n";
    let answer = server.exchange(request).await?;
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").ok_or("no head")?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&answer[end + 4..]).read_to_string(&mut text)?;
    assert_eq!(text, "all work and no play\n".repeat(500));
    assert!(answer.len() < 1000, "{} bytes", answer.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_tell_what_happened() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    server.get("/toy/things/1").await?;
    server.get("/TOY/things/2").await?;
    server.get("/toy/nowhere").await?;
    server.get("/toy/panic").await?;
    let body = b"POST /toy/things HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n{\"id\":\"3\"}";
    server.exchange(body).await?;
    let metrics = server.get("/metrics").await?;
    for line in [
        r#"pinakes_requests_total{dialect="toy",route="/toy/things/{id}",status="200"} 1"#,
        r#"pinakes_requests_total{dialect="toy",route="/toy/things/{id}",status="404"} 1"#,
        r#"pinakes_requests_total{dialect="toy",route="/toy/things",status="201"} 1"#,
        r#"pinakes_requests_total{dialect="toy",route="unmatched",status="404"} 1"#,
        "pinakes_panics_total 1",
        r#"pinakes_stage_seconds_count{stage="commit"} 1"#,
        r#"pinakes_request_seconds_count{dialect="toy"} 5"#,
        r#"pinakes_writer_queue_depth{tenant="default"} 0"#,
        "pinakes_open_tenants 1",
    ] {
        assert!(metrics.contains(&format!("{line}\n")), "{line} is not in\n{metrics}");
    }
    for name in [
        "pinakes_connections ",
        "process_cpu_seconds_total ",
        "process_resident_memory_bytes ",
        "pinakes_writer_commits_total{",
    ] {
        assert!(metrics.contains(&format!("\n{name}")), "{name} is not in\n{metrics}");
    }
    Ok(())
}

/// Bodies that look like requests stay as they are; targets after them are encoded, in whatever pieces they
/// arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raw_targets_among_bodies() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    let body = "GET /toy/<nothing> \"x\" HTTP/1.1\r\n\r\n";
    let length = body.len();
    let requests = format!(
        "POST /toy/echo?<1> HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}\
         POST /toy/echo?2 3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n\
         GET /toy/<y> z HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
    for n_bytes in [1, 7, 64, requests.len()] {
        let mut client = Client::connect(server.address).await?;
        for piece in requests.as_bytes().chunks(n_bytes) {
            client.send(piece).await?;
        }
        let answers = String::from_utf8(client.rest().await?)?;
        assert_eq!(answers.matches(body).count(), 2, "{answers}");
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
        assert!(answers.ends_with("/toy/%3Cy%3E%20z\\\"\"}"), "{answers}");
    }
    Ok(())
}
