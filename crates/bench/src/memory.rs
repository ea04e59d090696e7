//! How much memory something takes: by an allocator that counts while it is asked to, and as the kernel sees the process.

use anyhow::{Context, Result};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

static COUNTING: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicIsize = AtomicIsize::new(0);

/// The allocator that our binary has. It counts only while [`count`] is under way, so that other measurements do not pay for it.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe; all of it is handed on")]
// SAFETY: every call is handed to the other allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the pointer came from there, with this layout.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as isize - layout.size() as isize);
        // SAFETY: the pointer came from there, with this layout.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

fn add(bytes: isize) {
    if COUNTING.load(Ordering::Relaxed) {
        BYTES.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// How many bytes more are allocated after the work than before it, and what came of the work.
pub(crate) async fn count<T>(work: impl Future<Output = T>) -> (isize, T) {
    BYTES.store(0, Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    let done = work.await;
    COUNTING.store(false, Ordering::SeqCst);
    (BYTES.load(Ordering::SeqCst), done)
}

/// A line of the kernel's view of this process, in MiB: `VmRSS` is the memory that is in use, `VmHWM` the most that ever was.
pub(crate) fn status_mib(name: &str) -> Result<f64> {
    status_of("self", name)
}

/// The same of another process.
pub(crate) fn status_of(process: &str, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).with_context(|| format!("no {name} here"))?;
    Ok(kib.parse::<f64>()? / 1024.0)
}
