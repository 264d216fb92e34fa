"""From a DataFrame's rows to the operator: columns, types, watermark, payloads."""
