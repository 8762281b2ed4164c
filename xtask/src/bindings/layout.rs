//! Sizes and offsets, as clang made them.

use syn::{Expr, Lit, Stmt};

use super::model::text;
use crate::output::Result;

/// What the compiler made of a struct: numbers for "size", "align" and each field's offset.
pub struct Layout {
    pub name: String,
    pub size: String,
    pub align: String,
    pub offsets: Vec<(String, String)>,
}

impl Layout {
    /// The numbers of `["Size of X"][size_of::<X>() - 16];` and its like.
    pub fn read(expr: &Expr) -> Result<Self> {
        let unknown = || format!("`{}` is no layout assertion", text(expr));
        let Expr::Block(block) = expr else {
            return Err(unknown());
        };
        let mut layout = Layout {
            name: String::new(),
            size: String::new(),
            align: String::new(),
            offsets: Vec::new(),
        };
        for statement in &block.block.stmts {
            let Stmt::Expr(Expr::Index(index), _) = statement else {
                return Err(unknown());
            };
            let Expr::Array(array) = &*index.expr else {
                return Err(unknown());
            };
            let (Some(Expr::Lit(what)), Expr::Binary(difference)) =
                (array.elems.first(), &*index.index)
            else {
                return Err(unknown());
            };
            let (Lit::Str(what), number) = (&what.lit, text(&difference.right)) else {
                return Err(unknown());
            };
            let what = what.value();
            if let Some(name) = what.strip_prefix("Size of ") {
                (layout.name, layout.size) = (name.to_owned(), number);
            } else if what.starts_with("Alignment of ") {
                layout.align = number;
            } else if let Some((_, field)) = what
                .strip_prefix("Offset of field: ")
                .and_then(|field| field.split_once("::"))
            {
                layout.offsets.push((field.to_owned(), number));
            } else {
                return Err(unknown());
            }
        }
        Ok(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn every_number_of_an_assertion_is_read() {
        let block = syn::parse_quote!({
            ["Size of CUx"][::core::mem::size_of::<CUx>() - 12];
            ["Alignment of CUx"][::core::mem::align_of::<CUx>() - 4];
            ["Offset of field: CUx::a"][::core::mem::offset_of!(CUx, a) - 0];
            ["Offset of field: CUx::b"][::core::mem::offset_of!(CUx, b) - 8];
        });
        let layout = Layout::read(&block).unwrap();
        assert_eq!(
            (
                layout.name.as_str(),
                layout.size.as_str(),
                layout.align.as_str()
            ),
            ("CUx", "12", "4")
        );
        let offsets = [
            ("a".to_owned(), "0".to_owned()),
            ("b".to_owned(), "8".to_owned()),
        ];
        assert_eq!(layout.offsets, offsets);
    }

    #[test]
    fn another_form_of_assertion_is_an_error() {
        assert!(Layout::read(&syn::parse_quote!({ assert!(true) })).is_err());
        assert!(
            Layout::read(&syn::parse_quote!({
                ["Width of CUx"][f() - 1];
            }))
            .is_err()
        );
    }
}
