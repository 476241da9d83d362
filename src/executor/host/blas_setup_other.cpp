// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/resources.hpp"

namespace isoscale::executor::host {

int set_blas_threads(int /*threads*/) { return 0; }

std::string blas_name() { return "BLAS of unknown make"; }

std::string blas_warning() { return {}; }

}  // namespace isoscale::executor::host
