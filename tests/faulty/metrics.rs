//! The metrics of a controller that was started with `--metrics-address 127.0.0.1:0`.

use controlplane::wait_until;

use crate::controller::Controller;
use crate::stage::SOON;

/// The whole page.
pub fn metrics(controller: &Controller) -> String {
    let port = wait_until(SOON, "it says where its metrics are", || {
        let log = controller.log();
        let line = log.lines().find(|line| line.contains("serving metrics"));
        let port = line.and_then(|line| line.split("127.0.0.1:").nth(1));
        let digits = port.map(|port| port.chars().take_while(char::is_ascii_digit).collect::<String>());
        digits.ok_or(log)
    });
    let page = reqwest::blocking::get(format!("http://127.0.0.1:{port}/metrics"));
    page.and_then(|page| page.text()).expect("the page is there")
}

/// The sum of a metric over all its labels.
pub fn sum(page: &str, name: &str) -> f64 {
    let of = |line: &str| {
        let (sample, value) = line.rsplit_once(' ')?;
        (sample.split('{').next() == Some(name)).then(|| value.parse::<f64>().ok())?
    };
    page.lines().filter_map(of).sum()
}
