//! What a tenant may do to the others. Runs as a process of its own until it is killed.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    super::{
        client::{Address, Client, Result},
        load::connect,
    },
    with_token,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    Sleepers,
    Loops,
    ShortLoops,
    Floods,
    Questions,
    SlowBodies,
    BigTexts,
    BigLists,
}

impl Attack {
    pub(crate) const ALL: &[Attack] = &[
        Attack::Sleepers,
        Attack::Loops,
        Attack::ShortLoops,
        Attack::Floods,
        Attack::Questions,
        Attack::SlowBodies,
        Attack::BigTexts,
        Attack::BigLists,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Attack::Sleepers => "sleepers",
            Attack::Loops => "loops",
            Attack::ShortLoops => "short-loops",
            Attack::Floods => "floods",
            Attack::Questions => "questions",
            Attack::SlowBodies => "slow-bodies",
            Attack::BigTexts => "big-texts",
            Attack::BigLists => "big-lists",
        }
    }

    fn code(self) -> &'static str {
        match self {
            Attack::Sleepers => "await new Promise(done => setTimeout(done, 29000))",
            Attack::Loops => "for (;;);",
            Attack::ShortLoops => "const end = Date.now() + 20; while (Date.now() < end);",
            Attack::Questions => "return await mcp.asker.ask({})",
            Attack::BigTexts => "return 'x'.repeat(15 << 20)",
            Attack::BigLists => "return Array.from({ length: 1e6 }, (_, n) => [n])",
            Attack::Floods | Attack::SlowBodies => "return 1",
        }
    }

    fn clients(self) -> usize {
        match self {
            Attack::Loops | Attack::BigTexts | Attack::BigLists => 16,
            _ => 64,
        }
    }
}

/// Goes on for ever.
pub(crate) async fn attack(name: &str, url: &str) -> Result<()> {
    let attack = Attack::ALL.iter().find(|attack| attack.name() == name).ok_or("there is no such attack")?;
    let token = std::env::var("PML_BENCH_TOKEN").map_err(|error| error.to_string())?;
    if *attack == Attack::SlowBodies {
        join_all((0..attack.clients()).map(|_| slow_bodies(url, &token))).await;
        return Ok(());
    }
    let http = with_token(&token)?;
    let address = Address::Http(url.to_owned());
    let clients = if *attack == Attack::Questions {
        // Of one session: a server behind stdio asks only while its calls are one client's.
        vec![Client::connect_to_be_asked(&http, &address).await?]
    } else {
        connect(&http, &address, attack.clients()).await?
    };
    let again = |mut client: Client| async move {
        loop {
            // It doesn't matter to an attacker what came of it.
            let _ = client.call("pml_execute", &json!({"code": attack.code()})).await;
        }
    };
    if *attack == Attack::Questions {
        let sessions: Vec<Client> = (0..attack.clients()).map(|_| clients[0].same_session()).collect();
        join_all(sessions.into_iter().map(again)).await;
    } else {
        join_all(clients.into_iter().map(again)).await;
    }
    Ok(())
}

/// A request whose body never ends, again when it is refused.
async fn slow_bodies(url: &str, token: &str) {
    let Some(host) = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")) else { return };
    loop {
        let Ok(mut stream) = TcpStream::connect(host).await else { continue };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: 1000000\r\n\r\n"
        );
        if stream.write_all(head.as_bytes()).await.is_err() {
            continue;
        }
        let mut answer = [0; 1024];
        loop {
            tokio::select! {
                read = stream.read(&mut answer) => if matches!(read, Ok(0) | Err(_)) { break },
                () = tokio::time::sleep(Duration::from_millis(100)) => {
                    if stream.write_all(b" ").await.is_err() {
                        break;
                    }
                }
            }
        }
    }
}
