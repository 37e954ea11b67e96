//! An HTTP proxy that spoils chosen answers of an S3 server, as real networks and servers do.
//!
//! The `Host` header, which S3 signatures cover, passes unchanged, so the server takes the request as the client signed it.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Carried out; the connection then closes without an answer.
    Drop,
    /// Carried out; the connection is then reset.
    Reset,
    /// Carried out; only the status line of the answer arrives.
    Truncate,
    /// Carried out; this status is answered instead.
    Status(u16),
    /// Carried out; the real answer arrives late.
    Delay(Duration),
    /// Not carried out; the connection closes.
    Lost,
    /// Not carried out; the connection is reset.
    Abort,
    /// Not carried out; this status is answered.
    Refuse(u16),
    /// Not carried out; this status is answered, with this code and message of S3's.
    Answer(u16, &'static str, &'static str),
    /// Carried out late, when the client may have given up: a zombie.
    Stall(Duration),
}

/// Work done after the server carried a request out, before its answer is spoilt: another writer's turn.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// A fault that waits for its request.
pub struct Arm {
    /// None for any.
    method: Option<&'static str>,
    path_contains: String,
    /// Requests that it lets pass first.
    after: usize,
    times: usize,
    fault: Fault,
    meanwhile: Option<Meanwhile>,
}

impl fmt::Debug for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.method.unwrap_or("any");
        write!(f, "{method} *{}* after {} x{} {:?}", self.path_contains, self.after, self.times, self.fault)
    }
}

impl Arm {
    /// A fault for the next request with this method whose path contains this text (as it stands in the request line).
    pub fn new(method: &'static str, path_contains: impl Into<String>, fault: Fault) -> Self {
        Self { method: Some(method), path_contains: path_contains.into(), after: 0, times: 1, fault, meanwhile: None }
    }

    /// A fault for the request of this number, counted from 1, whatever it is.
    #[must_use]
    pub fn nth(number: usize, fault: Fault) -> Self {
        Self { method: None, after: number - 1, ..Self::new("", "", fault) }
    }

    /// A fault for the next put of a table's log entry.
    #[must_use]
    pub fn commit(version: u64, fault: Fault) -> Self {
        Self::new("PUT", format!("_delta_log/{version:020}.json"), fault)
    }

    /// A fault for every request from now on.
    #[must_use]
    pub fn all(fault: Fault) -> Self {
        Self::nth(1, fault).times(usize::MAX)
    }

    /// For this many requests instead of one.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// With work to do once, after the first request was carried out (or kept from the server, or held back) and before
    /// the client learns of it.
    #[must_use]
    pub fn meanwhile(mut self, work: impl FnOnce() + Send + 'static) -> Self {
        self.meanwhile = Some(Box::new(work));
        self
    }
}

/// A request that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its method.
    pub method: String,
    /// Its path and query, as sent.
    pub path: String,
    /// Whether it had `If-None-Match`.
    pub if_none_match: bool,
    /// What was done to it.
    pub fault: Option<Fault>,
    /// What the server answered, where it was asked.
    pub status: Option<u16>,
}

#[derive(Default)]
struct State {
    armed: VecDeque<Arm>,
    seen: Vec<Seen>,
    /// Requests that are being dealt with.
    under_way: usize,
}

/// Counts one request as under way for as long as it lives.
struct UnderWay<'a>(&'a Mutex<State>);

impl<'a> UnderWay<'a> {
    fn count(state: &'a Mutex<State>) -> Self {
        lock(state).under_way += 1;
        Self(state)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        lock(self.0).under_way -= 1;
    }
}

/// A running proxy; it stops listening when dropped.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stopped: Arc<AtomicBool>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy on a free port of 127.0.0.1 before a server.
    ///
    /// # Panics
    /// When there is no free port.
    #[must_use]
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (state, stopped) = (Arc::<Mutex<State>>::default(), Arc::<AtomicBool>::default());
        let (shared, stop) = (Arc::clone(&state), Arc::clone(&stopped));
        thread::spawn(move || {
            for client in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                let (Ok(client), state) = (client, Arc::clone(&shared)) else { continue };
                // A connection that breaks is the business of its two ends.
                thread::spawn(move || drop(serve(&client, server, &state)));
            }
        });
        Self { address, state, stopped }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lays a fault in wait; several wait in the order of this call.
    pub fn arm(&self, arm: Arm) {
        lock(&self.state).armed.push_back(arm);
    }

    /// The requests that passed, in order of their end.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.state).seen.clone()
    }

    /// The faults that still wait: a test whose fault never struck has shown nothing.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.state).armed.len()
    }

    /// Waits until no request is under way: what was held back has reached the server by then.
    pub fn settle(&self) {
        while lock(&self.state).under_way > 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the listener, which then sees that it is to stop.
        drop(TcpStream::connect(self.address));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One message: its head as it came, and its body as it came (chunked bodies with their chunk lines).
struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Message {
    fn start_line(&self) -> String {
        String::from_utf8_lossy(&self.head).lines().next().unwrap_or_default().to_owned()
    }

    fn header(&self, name: &str) -> Option<String> {
        header(&self.head, name)
    }

    fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    fn send(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&[self.head.as_slice(), self.body.as_slice()].concat())?;
        to.flush()
    }
}

fn serve(client: &TcpStream, server: SocketAddr, state: &Mutex<State>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (mut from_client, mut to_client) = (BufReader::new(client), client);
    let mut upstream = Upstream { server, connection: None };
    loop {
        let request = read_request(&mut from_client, &mut to_client)?;
        let _under_way = UnderWay::count(state);
        let start = request.start_line();
        let (method, rest) = start.split_once(' ').ok_or(ErrorKind::InvalidData)?;
        let path = rest.rsplit_once(' ').map_or(rest, |(path, _)| path);
        let (fault, mut meanwhile) = strike(state, method, path);
        let mut seen = Seen {
            method: method.to_owned(),
            path: path.to_owned(),
            if_none_match: request.header("if-none-match").is_some(),
            fault,
            status: None,
        };
        if let Some(Fault::Stall(wait)) = fault {
            if let Some(work) = meanwhile.take() {
                work();
            }
            thread::sleep(wait);
        }
        let answer = match fault {
            Some(Fault::Lost | Fault::Abort | Fault::Refuse(_) | Fault::Answer(..)) => None,
            _ => Some(upstream.ask(&request, method == "HEAD")?),
        };
        seen.status = answer.as_ref().and_then(|answer| answer.start_line().split(' ').nth(1)?.parse().ok());
        lock(state).seen.push(seen);
        if let Some(work) = meanwhile.take() {
            work();
        }
        match (fault, answer) {
            (Some(Fault::Drop | Fault::Lost), _) => return Ok(()),
            (Some(Fault::Reset | Fault::Abort), _) => {
                return socket2::SockRef::from(client).set_linger(Some(Duration::ZERO));
            }
            (Some(Fault::Truncate), Some(answer)) => {
                return to_client.write_all(format!("{}\r\n", answer.start_line()).as_bytes());
            }
            (Some(Fault::Status(status) | Fault::Refuse(status)), _) => refusal(status).send(&mut to_client)?,
            (Some(Fault::Answer(status, code, message)), _) => {
                error_document(status, code, message).send(&mut to_client)?;
            }
            (_, Some(answer)) => {
                if let Some(Fault::Delay(wait)) = fault {
                    thread::sleep(wait);
                }
                answer.send(&mut to_client)?;
                if answer.closes() {
                    return Ok(());
                }
            }
            (_, None) => return Ok(()),
        }
    }
}

fn strike(state: &Mutex<State>, method: &str, path: &str) -> (Option<Fault>, Option<Meanwhile>) {
    let mut state = lock(state);
    let is_for = |arm: &Arm| arm.method.is_none_or(|of| of == method) && path.contains(arm.path_contains.as_str());
    let Some(position) = state.armed.iter().position(is_for) else {
        return (None, None);
    };
    let arm = &mut state.armed[position];
    if arm.after > 0 {
        arm.after -= 1;
        return (None, None);
    }
    arm.times -= 1;
    let (fault, meanwhile, used_up) = (arm.fault, arm.meanwhile.take(), arm.times == 0);
    if used_up {
        state.armed.remove(position);
    }
    (Some(fault), meanwhile)
}

fn refusal(status: u16) -> Message {
    let code = match status {
        409 => "ConditionalRequestConflict",
        412 => "PreconditionFailed",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "SlowDown",
        _ => "Injected",
    };
    error_document(status, code, "injected by the tests")
}

fn error_document(status: u16, code: &str, message: &str) -> Message {
    let body = format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    let head = format!(
        "HTTP/1.1 {status} Injected\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    Message { head: head.into(), body: body.into() }
}

struct Upstream {
    server: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl Upstream {
    /// Sends a request; a kept connection that the server closed in the meantime is replaced once.
    fn ask(&mut self, request: &Message, is_head: bool) -> io::Result<Message> {
        if let Some(mut kept) = self.connection.take()
            && let Ok(answer) = exchange(&mut kept, request, is_head)
        {
            self.connection = (!answer.closes()).then_some(kept);
            return Ok(answer);
        }
        let connection = TcpStream::connect(self.server)?;
        connection.set_nodelay(true)?;
        let mut connection = BufReader::new(connection);
        let answer = exchange(&mut connection, request, is_head)?;
        self.connection = (!answer.closes()).then_some(connection);
        Ok(answer)
    }
}

fn exchange(server: &mut BufReader<TcpStream>, request: &Message, is_head: bool) -> io::Result<Message> {
    request.send(server.get_mut())?;
    loop {
        let head = read_head(server)?;
        let text = String::from_utf8_lossy(&head);
        let status: u16 = text.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or(ErrorKind::InvalidData)?;
        if status == 100 {
            continue;
        }
        let body = if is_head || matches!(status, 204 | 304) { Vec::new() } else { read_body(server, &head, true)? };
        return Ok(Message { head, body });
    }
}

fn read_request(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<Message> {
    let mut head = read_head(from)?;
    if header(&head, "expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        let text = String::from_utf8_lossy(&head).into_owned();
        let kept = text.split_inclusive("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("expect:"));
        head = kept.collect::<String>().into_bytes();
    }
    let body = read_body(from, &head, false)?;
    Ok(Message { head, body })
}

/// Up to and with the empty line; an end before it is an error, which ends the connection.
fn read_head(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if from.read_until(b'\n', &mut head)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

fn read_body(from: &mut impl BufRead, head: &[u8], is_answer: bool) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if header(head, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        loop {
            let line = body.len();
            from.read_until(b'\n', &mut body)?;
            let size = String::from_utf8_lossy(&body[line..]);
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| ErrorKind::InvalidData)?;
            read_exactly(from, size + 2, &mut body)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    match header(head, "content-length") {
        Some(length) => read_exactly(from, length.parse().map_err(|_| ErrorKind::InvalidData)?, &mut body)?,
        None if is_answer => drop(from.read_to_end(&mut body)?),
        None => {}
    }
    Ok(body)
}

fn read_exactly(from: &mut impl BufRead, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
    match from.by_ref().take(length).read_to_end(into)? as u64 == length {
        true => Ok(()),
        false => Err(ErrorKind::UnexpectedEof.into()),
    }
}

fn header(head: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}
