//! What usually keeps two devices apart, and what it means where they do not meet.

use std::fmt;

/// Where two devices do not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apart {
    /// This process does not see the other device.
    Unseen,
    /// The driver grants no peer access.
    Denied,
    /// The driver has granted it, and what one writes does not come to the other as it was.
    Lost,
}

/// What may be the reason, and how; `None` where it cannot be.
struct Cause {
    name: &'static str,
    unseen: Option<&'static str>,
    denied: Option<&'static str>,
    lost: Option<&'static str>,
}

const CAUSES: [Cause; 5] = [
    Cause {
        name: "PCIe ACS and IOMMU settings",
        unseen: None,
        denied: Some(
            "a virtual machine whose devices they keep apart grants no peer access by PCIe",
        ),
        lost: Some("they redirect or drop peer traffic, whatever the driver grants"),
    },
    Cause {
        name: "MIG",
        unseen: Some("a process sees one instance alone"),
        denied: Some("its instances have no peer access"),
        lost: Some("its instances have no peer access, whatever the driver grants"),
    },
    Cause {
        name: "container isolation of the devices",
        unseen: Some("each container has to have the devices of all ranks"),
        denied: Some("a sandbox may pass them on without their links"),
        lost: Some("a sandbox may show links that carry nothing"),
    },
    Cause {
        name: "`nvidia-smi topo -p2p r` and `-p2p w`",
        unseen: None,
        denied: Some("only pairs that are OK have peer access"),
        lost: Some("what the driver grants each pair"),
    },
    Cause {
        name: "CUDA_VISIBLE_DEVICES",
        unseen: Some("let every rank see all devices and choose by ordinal"),
        denied: None,
        lost: None,
    },
];

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = CAUSES.iter().filter_map(|cause| {
            let how = match self {
                Self::Unseen => cause.unseen,
                Self::Denied => cause.denied,
                Self::Lost => cause.lost,
            };
            how.map(|how| format!("{} ({how})", cause.name))
        });
        let causes: Vec<String> = causes.collect();
        write!(f, "look at {}", causes.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_names_what_can_cause_it_and_nothing_else() {
        let named = |apart: Apart| {
            let said = apart.to_string();
            CAUSES.each_ref().map(|cause| said.contains(cause.name))
        };
        assert_eq!(named(Apart::Unseen), [false, true, true, false, true]);
        assert_eq!(named(Apart::Denied), [true, true, true, true, false]);
        assert_eq!(named(Apart::Lost), [true, true, true, true, false]);
    }

    #[test]
    fn a_cause_says_what_it_means_for_the_failure() {
        assert_eq!(
            Apart::Unseen.to_string(),
            "look at MIG (a process sees one instance alone), \
             container isolation of the devices (each container has to have the devices of all ranks), \
             CUDA_VISIBLE_DEVICES (let every rank see all devices and choose by ordinal)"
        );
    }
}
