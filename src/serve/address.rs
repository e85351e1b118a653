//! Where a port is: at an address, at the addresses of a name, or at every address of the machine.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};

use socket2::{Domain, Protocol, Socket, Type};

/// Callers that may wait to be taken on. They are taken on at once, so that this is for bursts.
const BACKLOG: i32 = 1024;

/// Takes the ports that `ADDRESS:PORT` names. `:8080` is that port of every address of this machine, of IPv4 and IPv6;
/// of a name's addresses those are taken that can be had. No socket at all is an error.
pub(crate) fn listen(address: &str) -> io::Result<Vec<TcpListener>> {
    if let Some(port) = address.strip_prefix(':') {
        let port = port.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        return Ok(vec![everywhere(port, take)?]);
    }
    let mut taken = Vec::new();
    let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match take(address) {
            Ok(listener) => taken.push(listener),
            Err(error) => refused = error,
        }
    }
    if taken.is_empty() { Err(refused) } else { Ok(taken) }
}

/// One socket hears callers of both kinds, where the system has IPv6. A port that is taken or not allowed is not had by
/// leaving IPv6 out.
fn everywhere<T>(port: u16, take: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    use io::ErrorKind::{AddrInUse, PermissionDenied};
    match take((Ipv6Addr::UNSPECIFIED, port).into()) {
        Err(error) if !matches!(error.kind(), AddrInUse | PermissionDenied) => {
            take((Ipv4Addr::UNSPECIFIED, port).into())
        }
        taken => taken,
    }
}

fn take(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // What the system does unless told otherwise is a setting of the machine.
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// What is tried on a machine on which IPv6 fails in this way.
    fn tried(ipv6: io::ErrorKind) -> (Vec<String>, bool) {
        let tried = RefCell::new(Vec::new());
        let took = everywhere(8080, |address| {
            tried.borrow_mut().push(address.to_string());
            if address.is_ipv6() { Err(ipv6.into()) } else { Ok(()) }
        });
        (tried.into_inner(), took.is_ok())
    }

    #[test]
    fn ipv4_is_enough_where_the_system_has_no_ipv6() {
        let both = vec!["[::]:8080".to_string(), "0.0.0.0:8080".to_string()];
        for kind in [io::ErrorKind::Unsupported, io::ErrorKind::AddrNotAvailable, io::ErrorKind::Other] {
            assert_eq!(tried(kind), (both.clone(), true), "{kind}");
        }
    }

    #[test]
    fn a_port_that_cannot_be_had_is_not_had_by_halves() {
        for kind in [io::ErrorKind::AddrInUse, io::ErrorKind::PermissionDenied] {
            assert_eq!(tried(kind), (vec!["[::]:8080".to_string()], false), "{kind}");
        }
    }

    #[test]
    fn a_taken_port_is_an_error() {
        let taken = listen("127.0.0.1:0").expect("a free port");
        let address = taken[0].local_addr().expect("it has an address");
        assert_eq!(
            listen(&address.to_string()).map_err(|error| error.kind()).err(),
            Some(io::ErrorKind::AddrInUse)
        );
        let everywhere = listen(&format!(":{}", address.port())).map_err(|error| error.kind());
        assert_eq!(everywhere.err(), Some(io::ErrorKind::AddrInUse));
    }
}
