//! The shipped entries that run the protocol, each as a text of its own.

/// Entries that one template of `kernels/` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `all_gather_heads` by pushing.
    GatherPush,
    /// `all_gather_heads` by pulling.
    GatherPull,
    /// `lse_reduce_scatter` by pushing, for each type and size of world.
    ReducePush,
    /// `lse_reduce_scatter` by pulling, for each type and size of world.
    ReducePull,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 4] = [
        Family::GatherPush,
        Family::GatherPull,
        Family::ReducePush,
        Family::ReducePull,
    ];

    /// The image that holds its entries.
    pub fn image(self) -> &'static str {
        match self {
            Self::GatherPush | Self::GatherPull => "gather",
            Self::ReducePush | Self::ReducePull => "reduce",
        }
    }

    /// What the names of its entries begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::GatherPush => "sf_gather_push",
            Self::GatherPull => "sf_gather_pull",
            Self::ReducePush => "sf_reduce_push_",
            Self::ReducePull => "sf_reduce_pull_",
        }
    }

    /// Whether rows are stored at the peers; else they are stored at home and the peers load them.
    pub fn pushes(self) -> bool {
        matches!(self, Self::GatherPush | Self::ReducePush)
    }
}

/// One shipped entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is an instance of.
    pub family: Family,
    /// A whole PTX text: the head of the image and this entry alone.
    pub text: String,
}

impl Entry {
    /// How many sources its loops are unrolled for: what its name says, and one where they are not unrolled.
    pub(crate) fn sources(&self) -> usize {
        let (_, world) = self.name.rsplit_once("_w").unwrap_or_default();
        world.parse().unwrap_or(1)
    }
}

/// All shipped entries that run the protocol.
///
/// # Errors
///
/// The name of an image that is not shipped, or of an entry that its image does not hold in the expected form.
pub fn shipped() -> Result<Vec<Entry>, &'static str> {
    let mut found = Vec::new();
    for family in Family::ALL {
        let image = slabfence_ptx::image(family.image()).ok_or(family.image())?;
        let names = image.entries.iter().copied();
        for name in names.filter(|name| name.starts_with(family.prefix())) {
            let text = alone(image.ptx, name).ok_or(name)?;
            found.push(Entry { name, family, text });
        }
    }
    Ok(found)
}

/// The head of a text and one of its entries.
fn alone(ptx: &str, name: &str) -> Option<String> {
    const HEAD: &str = ".address_size 64\n";
    const END: &str = "\n}\n";
    let head = &ptx[..ptx.find(HEAD)? + HEAD.len()];
    let start = ptx.find(&format!(".visible .entry {name}("))?;
    let body = &ptx[start..];
    let body = &body[..body.find(END)? + END.len()];
    Some(format!("{head}\n{body}"))
}
