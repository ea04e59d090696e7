//! The `#[workflow]` attribute. Use it through the `steadfast` package.

mod purity;
mod settings;
mod signature;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{quote, quote_spanned};
use signature::Types;
use syn::spanned::Spanned;
use syn::{Error, ItemFn, LitStr};

/// Makes a workflow of an async function that takes a `Ctx` and an input and returns `Result<Output, Failure>`.
///
/// The function's name becomes a value of its own type, to be given to `register`; it is also the workflow's registered name, unless
/// `#[workflow(name = "…")]` says otherwise. The name is stored with every run: keep it when you rename the function.
///
/// Code between steps must take the same way again when it is replayed. What obviously cannot, a wall clock, a random number, a spawned task, a sleep that
/// is not durable, is refused at compile time with what to use instead, unless it stands inside a closure, as the code of steps does.
#[proc_macro_attribute]
pub fn workflow(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse(item) {
        Ok(function) => function,
        Err(error) => return Error::new(error.span(), "#[workflow] stands on an async fn").into_compile_error().into(),
    };
    expand(arguments.into(), &function).into()
}

/// What is wrong comes with as much of the workflow as can be made of it, so that nothing else is reported than that.
fn expand(arguments: Tokens, function: &ItemFn) -> Tokens {
    let (name, wrong_settings) = match settings::registered_name(arguments) {
        Ok(name) => (name, None),
        Err(error) => (None, Some(error)),
    };
    let (types, wrong_form) = match signature::check(&function.sig) {
        Ok(types) => (Some(types), None),
        Err(error) => (None, Some(error)),
    };
    let wrong = [wrong_settings, wrong_form, purity::check(&function.block).err()].into_iter().flatten();
    let errors = wrong.map(Error::into_compile_error);
    let workflow = match types {
        Some(types) => implementation(name, function, &types),
        None => stand_in(function),
    };
    quote! { #(#errors)* #workflow }
}

fn implementation(name: Option<LitStr>, function: &ItemFn, types: &Types) -> Tokens {
    let ident = &function.sig.ident;
    let name = name.unwrap_or_else(|| LitStr::new(&ident.to_string(), ident.span()));
    let declaration = declaration(function);
    let mut inner = function.clone();
    inner.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
    inner.vis = syn::Visibility::Inherited;
    let Types { context, input, returned } = types;
    // What the compiler has to say about a type it says where the type stands.
    let context = quote_spanned! { context.span() => let ctx: #context = ctx; };
    let returned = quote_spanned! { returned.span() => #returned };
    let call = quote_spanned! { ident.span() => #ident(ctx, input) };
    quote! {
        #declaration

        impl ::steadfast::Workflow for #ident {
            const NAME: &'static str = #name;
            type Input = #input;
            type Returned = #returned;

            fn run(
                ctx: ::steadfast::Ctx,
                input: Self::Input,
            ) -> impl ::core::future::Future<Output = Self::Returned> + ::core::marker::Send + 'static {
                #inner
                #context
                #call
            }
        }
    }
}

/// The type of a workflow, whose value is what is registered.
fn declaration(function: &ItemFn) -> Tokens {
    let docs = function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    quote! {
        #(#docs)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #ident;
    }
}

/// What is known of a workflow whose form is wrong: its name. The types that it mentions are mentioned, so that their imports are not said to be unused.
fn stand_in(function: &ItemFn) -> Tokens {
    let (ident, signature) = (&function.sig.ident, &function.sig);
    if signature.receiver().is_some() {
        return Tokens::new(); // inside an `impl`, where there can be no type
    }
    let declaration = declaration(function);
    let mut mentioned = signature.clone();
    if signature::borrows(&mentioned.output) {
        mentioned.output = syn::ReturnType::Default; // that has been said already
    }
    quote! {
        #declaration

        const _: () = {
            #[allow(unused, clippy::all)]
            #mentioned { loop {} }
        };

        impl ::steadfast::Workflow for #ident {
            const NAME: &'static str = "";
            type Input = ();
            type Returned = ::core::result::Result<(), ::steadfast::Failure>;

            async fn run(_: ::steadfast::Ctx, _: ()) -> Self::Returned {
                ::core::unreachable!()
            }
        }
    }
}
