//! Slow and large requests: the memory they hold is bounded over all of them, and others are still served.

use std::io::Write as _;
use std::time::{Duration, Instant};

use pinakes_store::Limits;

use crate::common::{Client, Outcome, Server};

/// Sends a byte again and again until the server answers or closes.
async fn trickle(client: &mut Client, pause: Duration) -> Outcome {
    loop {
        client.send(b"x").await?;
        if client.has_answer(pause).await {
            return Ok(());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_slower_than_the_least_speed_is_refused() -> Outcome {
    let limits = Limits { body_timeout_ms: 1_000, least_speed_bytes_s: 1_000, ..Limits::default() };
    let server = Server::start(limits).await?;
    let mut client = Client::connect(server.address).await?;
    client.send(b"POST /toy/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n").await?;
    trickle(&mut client, Duration::from_millis(20)).await?;
    let answer = String::from_utf8(client.rest().await?)?;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("too slowly; at least 1000 bytes per second"), "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_hold_no_more_than_the_budget() -> Outcome {
    let server = Server::start(Limits { held_bytes: 300 << 10, ..Limits::default() }).await?;
    // An unfinished body holds most of it.
    let mut holder = Client::connect(server.address).await?;
    holder.send(b"POST /toy/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 250001\r\n\r\n").await?;
    holder.send(&vec![b'x'; 250_000]).await?;
    server.until_metric("pinakes_held_bytes", |held| 200_000.0 < held).await?;
    let large = [
        b"POST /toy/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n",
        &[b'x'; 100_000][..],
    ];
    let refused = String::from_utf8(server.exchange(&large.concat()).await?)?;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: 1"), "{refused}");
    assert!(refused.contains("limits.held_bytes"), "{refused}");
    let small = b"POST /toy/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
    let taken = String::from_utf8(server.exchange(small).await?)?;
    assert!(taken.starts_with("HTTP/1.1 200 "), "{taken}");
    // Memory that one releases is available to another.
    drop(holder);
    server.until_metric("pinakes_held_bytes", |held| held < 1.0).await?;
    let taken = String::from_utf8(server.exchange(&large.concat()).await?)?;
    assert!(taken.starts_with("HTTP/1.1 200 "), "{}", &taken[..200]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announced_body_holds_nothing() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::connect(server.address).await?;
        client.send(b"POST /toy/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 16000000\r\n\r\nab").await?;
        clients.push(client);
    }
    server.until_metric("pinakes_connections", |n| 20.0 < n).await?;
    for client in &mut clients {
        client.send(b"c").await?;
    }
    server.until_metric("pinakes_held_bytes", |held| held < 1.0).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_of_a_compressed_body_is_bounded() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    for (window_log, status) in [(23, "200"), (24, "400")] {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1)?;
        encoder.window_log(window_log)?;
        encoder.include_contentsize(false)?;
        encoder.write_all(b"{}")?;
        let body = encoder.finish()?;
        let head = format!(
            "POST /toy/echo HTTP/1.1\r\nHost: x\r\nContent-Encoding: zstd\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let answer = server.exchange(&[head.as_bytes(), &body].concat()).await?;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "2^{window_log}: {answer}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_leave_their_places_to_others() -> Outcome {
    let server = Server::start(Limits { scans: 2, slow_streams: 8, ..Limits::default() }).await?;
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut client = Client::connect(server.address).await?;
        client.send(b"GET /toy/stream/1000000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
        client.until("\r\n\r\n").await?;
        slow.push(client);
    }
    let began = Instant::now();
    let whole = server.get("/toy/stream/200000").await?;
    assert!(whole.ends_with("\r\n0\r\n\r\n"), "{}", &whole[..300]);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // They still get complete answers.
    let rest = String::from_utf8(slow.pop().ok_or("a client")?.rest().await?)?;
    assert!(rest.contains("000000000999999\n") && rest.ends_with("\r\n0\r\n\r\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_names_of_tenants_are_for_this_machine() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    let local = server.get("/metrics").await?;
    assert!(local.contains("pinakes_writer_writes_total{tenant=\"default\"}"), "{local}");
    let passed_on =
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 9.9.9.9\r\nConnection: close\r\n\r\n";
    let remote = String::from_utf8(server.exchange(passed_on).await?)?;
    assert!(
        remote.contains("pinakes_writer_writes_total{tenant=\"*\"}") && !remote.contains("\"default\""),
        "{remote}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_for_the_servers_own_routes_loses_no_request() -> Outcome {
    let server = Server::start(Limits::default()).await?;
    for head in ["PUT /metrics", "POST /nowhere", "OPTIONS /toy/list"] {
        let mut client = Client::connect(server.address).await?;
        let cors = "Origin: http://a\r\nAccess-Control-Request-Method: GET\r\n";
        let first = format!("{head} HTTP/1.1\r\nHost: x\r\n{cors}Content-Length: 5\r\n\r\nhello");
        client.send(first.as_bytes()).await?;
        client.send(b"GET /toy/list HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
        let both = String::from_utf8(client.rest().await?)?;
        assert!(both.ends_with("[{\"a\":1},2,\"x\"]"), "{head}: {both}");
    }
    Ok(())
}
