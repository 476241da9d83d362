// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <map>
#include <string>

/// A seam between the product and what it calls: the functions of HDF5, of files and processes
/// (POSIX), and of MPI are defined here once more, and the linker takes these. Each hands on to the
/// real one, unless a test has said that this call of it fails. Nothing of the product knows of it.
///
/// A function of HDF5 or MPI has its own name: "H5Dwrite", "MPI_Send". One of files is told by who
/// calls it: "pwrite" by the product, "pwrite@libhdf5" and "stat@libstdc++" by those libraries on
/// its behalf, which is what a full disk looks like. What anybody else calls is left alone.
///
/// Linked into a test program this seam is told what to do by the functions below; preloaded into
/// the whole program (LD_PRELOAD) by the variables of preload.cpp. Processes that are forked count
/// and fail together with their parent.
namespace isoscale::fault {

enum class Times { once, ever };

/// This value, given as an error, makes the call never return.
inline constexpr int stuck = -1;

struct Failing {
  std::string call;
  int nth = 1;  ///< from 1; counted from fail() on
  int error = EIO;
  Times times = Times::once;  ///< this call only, or all from it on
  std::string after{};  ///< counted only from the call `after_nth` of this function on; "": all
  int after_nth = 1;
};

/// From now on calls are counted, from zero; none fails.
void count();
/// From now on calls are counted, from zero, and this one fails.
void fail(const Failing& failing);
/// From now on nothing is counted and nothing fails. The counts stay.
void stop();
/// Those that have been called, and how often.
[[nodiscard]] std::map<std::string, int> calls();
/// How many calls have failed since fail().
[[nodiscard]] int failed();

}  // namespace isoscale::fault
