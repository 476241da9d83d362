// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

/// What is not in the BLAS standard; one source per library, picked by CMake.
namespace isoscale::executor::host {

/// Sets the number of threads that a BLAS call of this process uses; returns what is in force,
/// 0 when the library does not tell.
int set_blas_threads(int threads);

[[nodiscard]] std::string blas_name();  ///< "OpenBLAS 0.3.21 (SkylakeX)"

}  // namespace isoscale::executor::host
