// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/xid.hpp"

#include <algorithm>
#include <array>

namespace isoscale::system {
namespace {

constexpr std::string_view no_action = "check the program that ran before, if it comes again";
constexpr std::string_view reset = "reset the GPU when no work is on it: nvidia-smi -r";
constexpr std::string_view drain =
    "take the node out of service and run the vendor's diagnostics (dcgmi diag -r 3)";

constexpr std::array xids{
    Xid{13, XidOrigin::program, "an exception in a program's kernel", no_action},
    Xid{31, XidOrigin::program, "a page fault: a program used an address that is not its own",
        no_action},
    Xid{43, XidOrigin::program, "the GPU stopped a program's work after its error", no_action},
    Xid{45, XidOrigin::program, "work was torn down after a program ended or failed", no_action},
    Xid{48, XidOrigin::hardware, "an uncorrectable (double bit) ECC error", reset},
    Xid{62, XidOrigin::hardware, "the power management unit halted", reset},
    Xid{63, XidOrigin::hardware, "a memory row was remapped, or a page retired", reset},
    Xid{64, XidOrigin::hardware, "a memory row could not be remapped, or a page not retired",
        drain},
    Xid{74, XidOrigin::hardware, "an NVLink error", drain},
    Xid{79, XidOrigin::hardware, "the GPU has fallen off the bus", drain},
    Xid{92, XidOrigin::hardware, "a high rate of corrected (single bit) ECC errors", drain},
    Xid{94, XidOrigin::hardware, "an uncorrectable ECC error, contained to one program", reset},
    Xid{95, XidOrigin::hardware, "an uncorrectable ECC error, not contained", reset},
    Xid{119, XidOrigin::either, "the GPU's system processor (GSP) did not answer in time", reset},
    Xid{120, XidOrigin::either, "the GPU's system processor (GSP) failed", reset},
};

}  // namespace

std::optional<Xid> find_xid(int code) {
  const auto* const found = std::ranges::find(xids, code, &Xid::code);
  return found == xids.end() ? std::nullopt : std::optional{*found};
}

}  // namespace isoscale::system
