// Early return on error, for functions that return absl::Status or absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define THIMBLE_RETURN_IF_ERROR(expression)          \
  do {                                               \
    absl::Status thimble_status = (expression);      \
    if (!thimble_status.ok()) return thimble_status; \
  } while (false)

#define THIMBLE_CONCAT_INNER(a, b) a##b
#define THIMBLE_CONCAT(a, b) THIMBLE_CONCAT_INNER(a, b)

#define THIMBLE_ASSIGN_OR_RETURN(declaration, expression) \
  THIMBLE_ASSIGN_OR_RETURN_INNER(THIMBLE_CONCAT(thimble_result_, __LINE__), declaration, expression)
#define THIMBLE_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                           \
  if (!result.ok()) return std::move(result).status();                  \
  declaration = std::move(result).value()
