//! What of one kind is watched for the sake of rules: the objects with the labels that rules ask for, or all of them.
//!
//! A selector that many parents share narrows the watch. Where each parent has its own, one watch of everything costs less
//! than a watch for each.

use std::collections::BTreeMap;

use crate::object::selector::Selector;

/// So many selectors of one kind have a watch each.
const NARROW: usize = 8;

/// By selector: a watch, and the number of rules that it is for.
pub(super) struct Watches<W>(BTreeMap<Selector, (W, usize)>);

impl<W> Default for Watches<W> {
    fn default() -> Self {
        Watches(BTreeMap::new())
    }
}

impl<W> Watches<W> {
    /// Takes in a rule with this selector. Gives what it makes superfluous.
    pub(super) fn add(&mut self, labels: &Selector, watch: impl FnOnce(&Selector) -> W) -> Vec<W> {
        let everything = Selector::everything();
        let labels = if self.0.contains_key(&everything) { &everything } else { labels };
        if let Some((_, rules)) = self.0.get_mut(labels) {
            *rules += 1;
            return Vec::new();
        }
        if !labels.is_empty() && self.0.len() < NARROW {
            self.0.insert(labels.clone(), (watch(labels), 1));
            return Vec::new();
        }
        let narrow = std::mem::take(&mut self.0);
        let rules: usize = narrow.values().map(|(_, rules)| rules).sum();
        self.0.insert(everything.clone(), (watch(&everything), rules + 1));
        narrow.into_values().map(|(watch, _)| watch).collect()
    }

    /// Forgets a rule with this selector. Its watch goes on until it is taken, so that another rule can have it.
    pub(super) fn remove(&mut self, labels: &Selector) {
        let everything = Selector::everything();
        let labels = if self.0.contains_key(&everything) { &everything } else { labels };
        if let Some((_, rules)) = self.0.get_mut(labels) {
            *rules -= 1;
        }
    }

    pub(super) fn take_unused(&mut self) -> Vec<W> {
        let all = std::mem::take(&mut self.0);
        let (unused, used) = all.into_iter().partition(|(_, (_, rules))| *rules == 0);
        self.0 = used;
        BTreeMap::into_values(unused).map(|(watch, _)| watch).collect()
    }

    /// What shows the objects with these labels.
    pub(super) fn showing(&self, labels: &Selector) -> Option<&W> {
        let watch = self.0.get(&Selector::everything()).or_else(|| self.0.get(labels));
        watch.map(|(watch, _)| watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(number: usize) -> Selector {
        Selector::label("app", &number.to_string())
    }

    /// Watches that are the text of their selector.
    fn add(watches: &mut Watches<String>, labels: &Selector) -> Vec<String> {
        watches.add(labels, |labels| labels.to_string())
    }

    #[test]
    fn selector_that_rules_share_has_one_watch_until_the_last_of_them_goes() {
        let mut watches = Watches::default();
        for _ in 0..1000 {
            assert!(add(&mut watches, &app(1)).is_empty());
        }
        assert!(add(&mut watches, &app(2)).is_empty());
        assert_eq!(watches.showing(&app(1)), Some(&"app=1".to_string()));
        assert_eq!(watches.showing(&app(3)), None);
        (0..999).for_each(|_| watches.remove(&app(1)));
        assert!(watches.take_unused().is_empty());
        watches.remove(&app(1));
        assert_eq!(watches.take_unused(), ["app=1"]);
        assert_eq!(watches.showing(&app(2)), Some(&"app=2".to_string()));
    }

    #[test]
    fn many_selectors_have_one_watch_of_everything_instead() {
        let mut watches = Watches::default();
        (0..NARROW).for_each(|number| assert!(add(&mut watches, &app(number)).is_empty()));
        assert_eq!(add(&mut watches, &app(NARROW)).len(), NARROW);
        for number in 0..=NARROW {
            assert_eq!(watches.showing(&app(number)), Some(&String::new()));
        }
        assert!(add(&mut watches, &app(0)).is_empty());
        (0..=NARROW).for_each(|number| watches.remove(&app(number)));
        assert!(watches.take_unused().is_empty(), "one rule is left");
        watches.remove(&app(0));
        assert_eq!(watches.take_unused(), [""]);
    }

    #[test]
    fn rule_without_labels_makes_the_narrow_watches_superfluous() {
        let mut watches = Watches::default();
        add(&mut watches, &app(1));
        assert_eq!(add(&mut watches, &Selector::everything()), ["app=1"]);
        assert_eq!(watches.showing(&app(1)), Some(&String::new()));
    }
}
